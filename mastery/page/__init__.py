"""The report and the live dashboard: one page, two sources of data.

found      which run directories there are, and what is wrong with the others
data       a job as plain data: what it is and how it stands, and its curves, thinned out
assemble   the page as one file that works offline: `mastery report`
server     the page on this machine, live while runs train: `mastery watch`
clips      the trained agent on a task, as a GIF
static/    the page itself: HTML, a style sheet and plain scripts, which the file carries and
           the server serves as they are
"""
