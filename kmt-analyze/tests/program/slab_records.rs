//! Raw records of slab events, as the kernel of the capture x86_64-6.1 has them in its ring buffers.

/// kmem_cache_alloc of 200 bytes in an object of 256, by a call site.
pub fn alloc(pid: i32, ptr: u64, site: u64) -> Vec<u8> {
    let mut out = head(553, pid, &[site, ptr, 200, 256, 0xcc0]);
    out.extend([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
    out
}

/// kmem_cache_free into the cache `obj`.
pub fn free(pid: i32, ptr: u64, site: u64) -> Vec<u8> {
    let mut out = head(550, pid, &[site, ptr]);
    out.extend((4_u32 << 16 | 28).to_le_bytes());
    out.extend(b"obj\0");
    out
}

fn head(id: u16, pid: i32, words: &[u64]) -> Vec<u8> {
    let mut out = id.to_le_bytes().to_vec();
    out.extend([0, 0]);
    out.extend(pid.to_le_bytes());
    words.iter().for_each(|word| out.extend(word.to_le_bytes()));
    out
}
