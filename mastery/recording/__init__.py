"""Record any loop that has a teacher, as a run directory like that of `mastery train`.

points     sums over the updates of a point, and which updates a point covers
recorder   `record` and Recorder: follows a teacher and writes
adapters   how an adapter records: `record=`
"""
