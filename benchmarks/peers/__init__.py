"""Other systems that run the durable workloads: each module has the functions `chain`, `fan`, `loop`, `runs` and
`resume`. They report to no service: tracing is off, and there is no key of one."""

import os

os.environ.update(LANGSMITH_TRACING="false", LANGCHAIN_TRACING_V2="false")
