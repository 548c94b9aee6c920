#ifndef SLAB_H
#define SLAB_H
extern void *__kmalloc(unsigned long size, unsigned flags);
extern void kfree(const void *object);

static inline __attribute__((always_inline)) void *kmalloc(unsigned long size, unsigned flags)
{
	return __kmalloc(size, flags);
}

static inline __attribute__((always_inline)) void *kzalloc(unsigned long size, unsigned flags)
{
	return kmalloc(size, flags | 0x100);
}
#endif
