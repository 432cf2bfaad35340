"""Record any loop that has a teacher, as a run directory like that of `mastery train`.

points     sums over the updates of a point, and which updates a point covers
recorder   Recorder: follows a teacher and writes
record     `mastery.record`: makes one, for a new run or for the one that the teacher began
adapters   how an adapter records: `record=`
"""
