//! Columns by order.

use crate::render::screen::Column;

/// Columns of the orders that kernels have; low orders leave first.
pub const ORDERS: [Column; 16] = [
    Column::number("order 0").leaves(17),
    Column::number("order 1").leaves(16),
    Column::number("order 2").leaves(15),
    Column::number("order 3").leaves(14),
    Column::number("order 4").leaves(13),
    Column::number("order 5").leaves(12),
    Column::number("order 6").leaves(11),
    Column::number("order 7").leaves(10),
    Column::number("order 8").leaves(9),
    Column::number("order 9").leaves(8),
    Column::number("order 10").leaves(7),
    Column::number("order 11").leaves(6),
    Column::number("order 12").leaves(5),
    Column::number("order 13").leaves(4),
    Column::number("order 14").leaves(3),
    Column::number("order 15").leaves(2),
];

/// Column of all orders above.
pub const LARGER: Column = Column::number("larger orders").leaves(1);
