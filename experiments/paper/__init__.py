"""The paper's experiment: 784-n1-n2-10 classifiers of MNIST digits, n1 + n2 = 22, and their linear regions.

The steps are commands of ``python -m experiments.paper``:

`data`
    Read MNIST from a path, or take scikit-learn's small digits.
`train`
    Train the networks, all of one seed at once.
`index`
    The folder of trained networks and the file that lists them.
"""
