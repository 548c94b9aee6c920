//! Items with numbers that are given out again.

/// Keeps items under numbers; those of items that were taken out are used again, so that it grows with what is kept at
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
    /// Keeps an item; returns its number.
    #[inline]
    pub fn put(&mut self, item: T) -> u32 {
        if let Some(number) = self.unused.pop() {
            if let Some(place) = self.items.get_mut(number as usize) {
                *place = item;
            }
            return number;
        }
        self.items.push(item);
        self.items.len() as u32 - 1
    }

    /// Gives an item up.
    #[inline]
    pub fn take(&mut self, number: u32) -> Option<T> {
        let item = self.items.get(number as usize).copied()?;
        self.unused.push(number);
        Some(item)
    }

    /// The item of that number; of one that was given up, what it was.
    #[inline]
    pub fn get(&self, number: u32) -> Option<&T> {
        self.items.get(number as usize)
    }

    /// The same, to be changed.
    #[inline]
    pub fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.items.get_mut(number as usize)
    }

    /// The item of that number, or the last one there is.
    #[inline]
    pub fn get_or_last(&self, number: u32) -> Option<&T> {
        self.items.get((number as usize).min(self.items.len().wrapping_sub(1)))
    }

    /// All items, also those that were given up.
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
        assert_eq!((arena.get(a), arena.get(7), arena.get_or_last(7)), (Some(&'c'), None, Some(&'b')));
    }
}
