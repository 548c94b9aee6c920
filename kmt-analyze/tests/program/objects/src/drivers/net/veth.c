#include "../../include/linux/slab.h"

int open_devices;

__attribute__((noinline)) static int newlink(int n)
{
	char *device = kzalloc(n, 1);

	open_devices += n;
	return device[0];
}

int veth_open(int n)
{
	return newlink(n + 1) + newlink(n);
}
