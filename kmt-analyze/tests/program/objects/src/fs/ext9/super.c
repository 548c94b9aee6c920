#include "../../include/linux/slab.h"

#define TRACE_NAME trace_mount
#include "../../include/trace/events.h"

struct super {
	int blocks;
	void *group;
};

static inline __attribute__((always_inline)) void *read_group(struct super *super, int n)
{
	void *group = kmalloc(n * 16, 1);

	super->group = group;
	return group;
}

__attribute__((noinline)) int fill_super(int n)
{
	struct super *super = kzalloc(sizeof(*super), 1);

	super->blocks = n;
	if (read_group(super, n))
		super->blocks += 2;
	trace_mount(n);
	return super->blocks;
}

__attribute__((section(".init.text"), noinline)) int init_ext9(int n)
{
	void *cache = kmalloc(n, 2);

	return fill_super(n) + (cache != 0);
}
