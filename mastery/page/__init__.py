"""The report and the live dashboard: one page, two sources of data.

places     finds run directories, and reports those that cannot be shown
data       a job as plain data: its description, its progress and its curves
thinned    curves with as few points as the page shows
packing    documents with arrays as bytes, for a file
tail       a cache of the newest points of a job that is being watched
recorded   a recorded job as the same data
inline     the page inside a notebook
files      the page's own files, and its modules as one script
assemble   the page as one file that works offline: `mastery report`
server     the page served on this machine, live while runs train: `mastery watch`
clips      agents from several moments of training, as GIFs: which to make, and who makes them
playing    the process that makes them
static/    the page itself: HTML, a style sheet and ES modules, which the file embeds and the
           server serves unchanged
"""
