"""The afternoon's alternative to maxsimd: its contract served by grpcio and torch, for comparison.

    server.py [--scoring=padded|packed] [--listen=ADDRESS] [--threads=N] [--torch-threads=N]

`padded` scores as colpali-engine's score_multi_vector does: documents padded to the longest, one einsum
(so a short document whose products are all negative scores as if it matched the padding).
`packed` is what somebody makes of it who has read about MaxSim: one matrix product over all rows, one
segment maximum.  No batching over calls, no limits, no cancellation, no health: what is missing costs it
nothing here.
"""

import argparse
from collections.abc import Callable, Iterator
from concurrent import futures

import grpc
import torch

from maxsimd.v1 import rerank_pb2 as pb
from maxsimd.v1 import rerank_pb2_grpc

TORCH_TYPES = {
    pb.ELEMENT_TYPE_FLOAT32: torch.float32,
    pb.ELEMENT_TYPE_FLOAT16: torch.float16,
    pb.ELEMENT_TYPE_BFLOAT16: torch.bfloat16,
}


def to_tensor(matrix: pb.TokenMatrix) -> torch.Tensor:
    """A float32 tensor [tokens, dim]."""
    if not matrix.data:
        return torch.empty(0, max(matrix.dim, 1))
    rows = torch.frombuffer(bytearray(matrix.data), dtype=TORCH_TYPES[matrix.element_type])
    return rows.view(-1, matrix.dim).float()


def score_padded(query: torch.Tensor, rows: torch.Tensor, lengths: list[int]) -> torch.Tensor:
    """A score for each of the documents, which lie back to back."""
    documents = torch.nn.utils.rnn.pad_sequence(
        list(rows.split(lengths)), batch_first=True, padding_value=0
    )
    return torch.einsum("bnd,csd->bcns", query[None], documents).max(dim=3)[0].sum(dim=2)[0]


def score_packed(query: torch.Tensor, rows: torch.Tensor, lengths: list[int]) -> torch.Tensor:
    """The same."""
    products = rows @ query.T  # [rows, query_tokens]
    return torch.segment_reduce(products, "max", lengths=torch.tensor(lengths)).sum(1)


class Service(rerank_pb2_grpc.RerankServiceServicer):
    """Both methods that score, and the limits that clients ask for.

    Args:
        score: `score_padded` or `score_packed`.
    """

    def __init__(self, score: Callable[[torch.Tensor, torch.Tensor, list[int]], torch.Tensor]) -> None:
        self._score = score

    def Rerank(self, request: pb.RerankRequest, context: grpc.ServicerContext) -> Iterator[pb.RerankResponse]:
        yield from self._serve(iter([(request, request.documents)]))

    def RerankStream(
        self, messages: Iterator[pb.RerankStreamRequest], context: grpc.ServicerContext
    ) -> Iterator[pb.RerankResponse]:
        def parts() -> Iterator[tuple[pb.RerankRequest, pb.Documents]]:
            start = pb.RerankRequest()
            for message in messages:
                if message.HasField("start"):
                    start = message.start
                    yield start, start.documents
                else:
                    yield start, message.documents

        yield from self._serve(parts())

    def _serve(
        self, parts: Iterator[tuple[pb.RerankRequest, pb.Documents]]
    ) -> Iterator[pb.RerankResponse]:
        count = 0
        for request, documents in parts:
            if not documents.lengths:
                continue
            with torch.inference_mode():
                scores = self._score(
                    to_tensor(request.query.tokens),
                    to_tensor(documents.tokens),
                    list(documents.lengths),
                ).tolist()
            yield pb.RerankResponse(results=[
                pb.ScoredDocument(index=count + i, score=value, status=pb.DOCUMENT_STATUS_SCORED)
                for i, value in enumerate(scores)
            ])
            count += len(scores)
        yield pb.RerankResponse(summary=pb.RerankSummary(documents=count))

    def GetServerInfo(
        self, request: pb.GetServerInfoRequest, context: grpc.ServicerContext
    ) -> pb.GetServerInfoResponse:
        limits = pb.Limits(max_message_bytes=64 << 20, max_stream_message_bytes=4 << 20)
        return pb.GetServerInfoResponse(version="baseline", backend="torch", limits=limits)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scoring", choices=["padded", "packed"], default="padded")
    parser.add_argument("--listen", default="127.0.0.1:0")
    parser.add_argument("--threads", type=int, default=16, help="calls at a time")
    parser.add_argument("--torch-threads", type=int, default=torch.get_num_threads())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.torch_threads)
    server = grpc.server(
        futures.ThreadPoolExecutor(arguments.threads),
        options=[("grpc.max_receive_message_length", -1)],
    )
    rerank_pb2_grpc.add_RerankServiceServicer_to_server(
        Service(score_padded if arguments.scoring == "padded" else score_packed), server
    )
    port = server.add_insecure_port(arguments.listen)
    server.start()
    print(f"listening on 127.0.0.1:{port}", flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main()
