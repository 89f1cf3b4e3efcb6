//! Notices on standard error.

use towline_app::Notice;
use towline_view::notice_text;

use crate::output;

/// Prints them in their order.
pub(crate) fn print(notices: &[Notice]) {
    notices.iter().for_each(|notice| output::eprint(format_args!("{}", notice_text(notice))));
}
