//! Columns by order.

use crate::render::screen::Column;

/// Headings of the orders that get a column of their own.
const HEADINGS: [&str; 16] = [
    "order 0", "order 1", "order 2", "order 3", "order 4", "order 5", "order 6", "order 7", "order 8",
    "order 9", "order 10", "order 11", "order 12", "order 13", "order 14", "order 15",
];

/// Number of orders with a column of their own.
pub const ORDERS: usize = HEADINGS.len();

/// Columns of the orders that kernels have; low orders leave first.
pub fn order_columns() -> impl Iterator<Item = Column> {
    HEADINGS.into_iter().zip((2..=17).rev()).map(|(heading, leaves)| Column::number(heading).leaves(leaves))
}

/// Column of all orders above.
pub const LARGER: Column = Column::number("larger orders").leaves(1);
