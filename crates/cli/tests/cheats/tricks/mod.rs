//! The tricks, by cause. The macro makes a test of each and a list of all.

use crate::trick::Trick;

macro_rules! tricks {
    ($($name:ident = $trick:expr;)+) => {
        /// All tricks of this module.
        pub(crate) static TRICKS: &[crate::trick::Trick] = &[$($trick),+];

        $(
            #[test]
            fn $name() {
                crate::promises::assert_outcome(&$trick);
            }
        )+
    };
}

mod checkout;

/// All tricks.
pub(crate) fn all() -> impl Iterator<Item = &'static Trick> {
    [checkout::TRICKS].into_iter().flatten()
}
