"""Prompts: a curriculum of two levels, tasks and the prompts in them.

estimates    a prompt's pass rate from its own few returns and its task's
labels       the task of each example of a dataset
pool         what is known of each prompt and of each task
choice       which prompts of a task come next
batch        the prompts that `next` gives
reading      what users give, checked
tickets      draws that wait for their report
explanation  why each prompt is as likely as it is
saving       the state, as data and as a file
prompts      Prompts: next, report, add, retire
"""
