"""Estimates in this process with a fixed number of probes, in place of a process of their own: tests then do not depend on the machine's speed."""

import time

import tessella
from tessella.estimating.estimate import EstimateProgress


class Here:
    """Has the face of `tessella.analysis.estimating_process.EstimatingProcess`."""

    probes = 5
    wait_share = 0.0  # part of the time to let pass before it tells how it stands

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def wait(self):
        return None

    def estimate(self, known, *, seconds, tell, **options):
        done = tessella.estimate(known.network, known.domain, stability=known, probes=self.probes, **options)
        time.sleep(self.wait_share * seconds)
        if done.probes and tell(
            EstimateProgress(done.maps, done.relative_error, done.lower, done.confidence, done.probes, done.seconds)
        ):
            return None
        return done


class SlowHere(Here):
    """Tells late enough to be judged."""

    probes = 20
    wait_share = 0.2
