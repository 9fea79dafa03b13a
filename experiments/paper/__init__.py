"""The paper's experiment: 784-n1-n2-10 classifiers of MNIST digits, n1 + n2 = 22, and their linear regions.

The steps are commands of ``python -m experiments.paper``:

`commands`, `options`
    The command line.
`data`
    Read MNIST from a path, or take scikit-learn's small digits.
`train`
    Train the networks, all of one seed at once.
`files`, `index`
    Files that are whole or not there; the folder of trained networks and the file that lists them.
`tasks`, `results`, `run`, `watch`
    What is measured of a network; the file that keeps it; who does what next; what a person sees meanwhile.
`published`, `summary`, `tables`, `figures`, `page`, `report`
    The paper's own numbers; ours, compared; and how they are shown.
`smoke`
    All of it on small images.
"""
