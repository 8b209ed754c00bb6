"""The generated messages and stubs of proto/maxsimd/v1/rerank.proto, made when the wheel is built."""
