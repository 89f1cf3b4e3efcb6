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

mod after_checkout;
mod authority;
mod checkout;
mod evidence;
mod git_data;
mod hidden_changes;
mod in_place;
mod large_files;
mod later_commands;
mod outside;
mod processes;
mod product_code;
mod programs;
mod protection;
mod results;
mod runners;
mod secrets;
mod shared_repository;
mod special_files;
mod state_files;

pub(crate) fn all() -> impl Iterator<Item = &'static Trick> {
    [
        checkout::TRICKS,
        large_files::TRICKS,
        git_data::TRICKS,
        shared_repository::TRICKS,
        results::TRICKS,
        after_checkout::TRICKS,
        processes::TRICKS,
        special_files::TRICKS,
        state_files::TRICKS,
        protection::TRICKS,
        runners::TRICKS,
        programs::TRICKS,
        authority::TRICKS,
        secrets::TRICKS,
        outside::TRICKS,
        hidden_changes::TRICKS,
        in_place::TRICKS,
        later_commands::TRICKS,
        product_code::TRICKS,
        evidence::TRICKS,
    ]
    .into_iter()
    .flatten()
}
