"""Problems that can be generated and checked as arrays: twelve families, four levels each.

    alphabet    the symbols of prompts and answers, and pieces of text as arrays
    families    one function per family: a new problem of a level
    problems    many problems of given tasks, some of them held out; which completions are right

`12+34=` is a prompt, `46` its answer. Higher levels have longer prompts, answers, or both.
"""
