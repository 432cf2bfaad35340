"""One training job of many runs: programs × settings × seeds, kept in a directory.

Training, in the order data flows:

    job             what is to be trained, as data
    machine         what it is trained on, and how it uses the cores
    loop            what every loop gives: metrics and evaluations
    compiled_loop   all runs compiled, on all devices: at once on a GPU, in turn on a CPU
    minigrid_loop   of teacher, environments and agent: reinforcement learning
    addition_loop   of teacher and network: supervised learning
    gymnasium_loop  the agent in any Gymnasium environments, on the CPU: gymnasium_tasks makes
                    them, gymnasium_play plays
    arrays          what a loop carries, as named arrays
    signals         Ctrl-C, while there is something to save
    store           the run directory: metrics, checkpoints, who is using it
    train           from begin to end, and on after an interruption

What came of it, without JAX but for the agent (`mastery.page` shows it):

    database        run.db, to read from
    results         the curves as arrays
    export          as CSV, as Parquet, or as events for TensorBoard
    agent           load_agent(): the trained policy
"""
