#include "../include/linux/slab.h"

int limit = 5;
const int table[64] = { 1, 2, 3 };
int counters[100];

__attribute__((noinline)) int start_kernel(int n)
{
	char *object = kzalloc(n, 1);

	if (n > limit)
		object[0] = table[n & 63];
	counters[n % 100]++;
	kfree(object);
	return object[1];
}
