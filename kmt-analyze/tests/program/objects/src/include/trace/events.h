/* Lines of a header that is a function wherever it is included, as tracepoints are. */
__attribute__((noinline)) void *TRACE_NAME(int n)
{
	return (char *)__kmalloc(n, 1) + 1;
}
