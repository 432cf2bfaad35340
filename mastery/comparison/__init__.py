"""Compare programs on problems with verifiable rewards, at equal tokens: `mastery benchmark`.

jobs        what is trained: programs, orders, seeds, budget
orders      a program that was given another order of the same tasks
curves      pass rates on held-out problems over tokens, in a file small enough to ship
measures    tokens to a pass rate, groups without signal, tasks learned: with intervals
figures     pictures of these
report      tables and page
"""
