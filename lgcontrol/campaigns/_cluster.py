"""Clusters of dask.distributed as executors."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ._design import CampaignError

SCHEDULER_PATIENCE = 10  # s for a scheduler to answer


class Cluster:
    """Workers of a scheduler that runs somewhere.

    Parameters
    ----------
    client : distributed.Client or str
        Or the scheduler's address, "tcp://host:8786".
    """

    def __init__(self, client: Any) -> None:
        self._own = isinstance(client, str)
        self.client: Any = _connected(client) if isinstance(client, str) else client
        self._threads = sum(self.client.nthreads().values())
        if not self._threads:
            raise CampaignError("the cluster has no workers: start some, then the campaign")

    @property
    def workers(self) -> int:
        """Cases that run at a time, at the start."""
        return self._threads

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        """Future of a call, which runs anew each time it is asked for."""
        return self.client.submit(function, *arguments, pure=False)

    def stop(self) -> None:
        """Leave the scheduler, if this object came to it."""
        if self._own:
            self.client.close(timeout=1)


def is_client(executor: Any) -> bool:
    """Whether an executor is a client of dask.distributed."""
    return type(executor).__module__.partition(".")[0] == "distributed"


def _connected(address: str) -> Any:
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise CampaignError(
            'a cluster needs dask.distributed: install it with pip install "lgcontrol[cluster]"'
        ) from None
    try:
        return distributed.Client(address, timeout=SCHEDULER_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise CampaignError(
            f"no scheduler answers at {address}: {str(error).splitlines()[0]}; start one with "
            "`dask scheduler`, and workers with `dask worker ADDRESS --nthreads 1`"
        ) from error
