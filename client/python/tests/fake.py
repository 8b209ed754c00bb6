"""A server in Python that does what a test tells it, and scores rightly otherwise."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any

import grpc
import numpy as np

from maxsimd.v1 import rerank_pb2 as pb

Response = pb.RerankResponse


class Fake:
    """What the server does and saw.

    Attributes:
        plans: one function for each call to come, `plan(context, results)`, which gives the
            responses; a call without one is served rightly.
        calls: the name of each scoring call so far.
        metadata: of each of them.
        received: documents of each of them.
    """

    def __init__(self, **limits: int) -> None:
        self.limits = pb.Limits(**limits)
        self.plans: list[Callable[[grpc.ServicerContext, Iterator[Response]], Any]] = []
        self.calls: list[str] = []
        self.metadata: list[dict[str, Any]] = []
        self.received: list[int] = []
        self._lock = threading.Lock()

    def _serve(self, name: str, messages: Iterator[Any], context: grpc.ServicerContext) -> Any:
        with self._lock:
            plan = self.plans.pop(0) if self.plans else None
            self.calls.append(name)
            self.metadata.append(dict(context.invocation_metadata()))
            self.received.append(0)
            number = len(self.calls) - 1
        results = self._score(messages, number)
        return plan(context, results) if plan else results

    def _score(self, messages: Iterator[Any], number: int) -> Iterator[Response]:
        """One response for each message, and the summary."""
        start = pb.RerankRequest()
        for message in messages:
            if isinstance(message, pb.RerankRequest):
                start, documents = message, message.documents
            elif message.HasField("start"):
                start, documents = message.start, message.start.documents
            else:
                documents = message.documents
            yield Response(results=self._results(start, documents, self.received[number]))
            self.received[number] += len(documents.lengths)
        yield Response(summary=pb.RerankSummary(documents=self.received[number]))

    def _results(
        self, start: pb.RerankRequest, documents: pb.Documents, first: int
    ) -> list[pb.ScoredDocument]:
        rows = np.frombuffer(documents.tokens.data, np.float32).reshape(-1, start.query.tokens.dim)
        query = np.frombuffer(start.query.tokens.data, np.float32).reshape(-1, rows.shape[1])
        ends = np.cumsum(documents.lengths)
        return [
            pb.ScoredDocument(
                index=first + i,
                score=(query @ rows[end - length : end].T).max(axis=1).sum(),
                status=pb.DOCUMENT_STATUS_SCORED,
            )
            for i, (length, end) in enumerate(zip(documents.lengths, ends, strict=True))
        ]

    def handlers(self) -> list[grpc.GenericRpcHandler]:
        def rerank(request: Any, context: Any) -> Any:
            return self._serve("Rerank", iter([request]), context)

        def rerank_stream(requests: Any, context: Any) -> Any:
            return self._serve("RerankStream", requests, context)

        def info(_: Any, context: Any) -> pb.GetServerInfoResponse:
            return pb.GetServerInfoResponse(limits=self.limits, backend="fake")

        serialize = Response.SerializeToString
        return [
            grpc.method_handlers_generic_handler(
                "maxsimd.v1.RerankService",
                {
                    "Rerank": grpc.unary_stream_rpc_method_handler(
                        rerank, pb.RerankRequest.FromString, serialize
                    ),
                    "RerankStream": grpc.stream_stream_rpc_method_handler(
                        rerank_stream, pb.RerankStreamRequest.FromString, serialize
                    ),
                    "GetServerInfo": grpc.unary_unary_rpc_method_handler(
                        info,
                        pb.GetServerInfoRequest.FromString,
                        pb.GetServerInfoResponse.SerializeToString,
                    ),
                },
            )
        ]


@contextlib.contextmanager
def serving(fake: Fake, credentials: grpc.ServerCredentials | None = None) -> Iterator[str]:
    """Serves on a free port, and gives the address."""
    server = grpc.server(futures.ThreadPoolExecutor(8))
    server.add_generic_rpc_handlers(fake.handlers())
    if credentials is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


def failing(code: grpc.StatusCode, details: str = "", pushback: str | None = None) -> Any:
    """A plan: the call fails at once."""

    def plan(context: grpc.ServicerContext, results: Iterator[Response]) -> Iterator[Response]:
        if pushback is not None:
            context.set_trailing_metadata((("grpc-retry-pushback-ms", pushback),))
        context.abort(code, details)
        return results

    return plan


def failing_after(responses: int) -> Any:
    """A plan: the call fails as UNAVAILABLE after so many responses."""

    def plan(context: grpc.ServicerContext, results: Iterator[Response]) -> Iterator[Response]:
        for _, response in zip(range(responses), results, strict=False):
            yield response
        context.abort(grpc.StatusCode.UNAVAILABLE, "gone")

    return plan
