"""The rules of other papers, each as a kind of attention or as a gate.

One module per rule: its paper, its formula, and where ours differs. docs/rules.md compares
them. A rule's p is the mean return of a time-step between the task's given bounds, in [0, 1]; its
mean |advantage| is computed from the spread of a group of returns (`TimeStep.advantage`).

    learnability   Learnability: p (1 − p)                      Rutherford et al. 2024
    plr            PLR: prioritised level replay                 Jiang et al. 2021
    bidirectional  Bidirectional: learning progress, both ways   Kanitscheider et al. 2021
    sec            SEC: mean |advantage|, a moving average       Chen et al. 2025
    dump           DUMP: mean |advantage| with a UCB bonus       Wang et al. 2025
    adarft         AdaRFT: tasks near a target difficulty        Shi et al. 2025
    mopps          MoPPS: posterior sampling near p = 1/2        Qu et al. 2025
    odm            ODM: Exp3 on losses                           Albalak et al. 2023
    ado            ADO: the slope of a fitted scaling law        Jiang et al. 2024
    gates          zero variance, retiring, and GRESO            Yu et al., Zheng et al. 2025
"""
