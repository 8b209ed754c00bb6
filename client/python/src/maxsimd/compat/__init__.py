"""Functions with the signatures of libraries that score in process; they call a maxsimd server.

`maxsimd.compat.pylate.rerank`, `maxsimd.compat.colpali_engine.score_multi_vector` and
`maxsimd.compat.maxsim_cpu.maxsim_scores` take what the originals take, so that a change of the import
moves a pipeline.  They call the client given as `client=`, else that of `use`, else one made at the
first call for the address in the environment's ``MAXSIMD_TARGET`` (``127.0.0.1:50051``).

Where the results differ from the originals':

* The originals pad short documents with zero rows, and the zeros take part in the maximum: a query token
  whose similarity to every token of a document is negative counts 0 when a longer document shares the
  batch.  Here padding doesn't exist, and a score doesn't depend on the other documents.
* A document without tokens scores -infinity.
* Sums are float32's whatever the type of the embeddings.

float64 arrays and nested lists are scored as float32; where types differ, all are.
"""

from maxsimd.compat._default import use

__all__ = ["use"]
