//! Storage for items by number, with reuse of numbers.
//!
//! The table of addresses refers to decisions, and `frames` to allocations, by a number of four bytes. Numbers of
//! removed items are used again, so that memory follows the items that exist at one time.

/// Stores items by number and reuses the numbers of removed items, so that it grows with the number of items present at
/// once.
#[derive(Clone, Debug)]
pub struct Arena<T> {
    items: Vec<T>,
    unused: Vec<u32>,
}

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Self { items: Vec::new(), unused: Vec::new() }
    }
}

impl<T: Copy> Arena<T> {
    /// Stores an item; returns its number.
    #[inline]
    pub fn put(&mut self, item: T) -> u32 {
        if let Some(number) = self.unused.pop() {
            if let Some(slot) = self.items.get_mut(number as usize) {
                *slot = item;
            }
            return number;
        }
        self.items.push(item);
        self.items.len() as u32 - 1
    }

    /// Removes an item.
    #[inline]
    pub fn take(&mut self, number: u32) -> Option<T> {
        let item = self.items.get(number as usize).copied()?;
        self.unused.push(number);
        Some(item)
    }

    /// The item of that number; the last value if it was removed.
    #[inline]
    pub fn get(&self, number: u32) -> Option<&T> {
        self.items.get(number as usize)
    }

    /// The item of a number, mutable.
    #[inline]
    pub fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.items.get_mut(number as usize)
    }

    /// All items, including removed ones.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.items.iter_mut()
    }

    /// All items, including removed ones, not mutable.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again() {
        let mut arena = Arena::default();
        let (a, b) = (arena.put('a'), arena.put('b'));
        assert_eq!((arena.take(a), arena.get(b)), (Some('a'), Some(&'b')));
        assert_eq!(arena.put('c'), a);
        assert_eq!((arena.get(a), arena.get(7)), (Some(&'c'), None));
    }
}
