static char memory[4096];
static unsigned long used;

__attribute__((noinline)) void *__kmalloc(unsigned long size, unsigned flags)
{
	used += size + flags;
	return memory + used % 1024;
}

__attribute__((noinline)) void kfree(const void *object)
{
	used -= (unsigned long)object & 7;
}
