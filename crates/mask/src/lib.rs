//! Hides secrets in text: values that are known, and what has the shape of a token.
//!
//! [`Secrets`] collects what is known, [`Mask`] replaces it in text by a steady marker such as `[masked API_KEY]`. Nothing
//! here reads an environment, a file or a terminal.

mod edges;
mod files;
mod forms;
mod mask;
mod matching;
mod secrets;
mod shapes;

pub use files::FileKind;
pub use mask::Mask;
pub use matching::{is_masked_form_of, shows_marker};
pub use secrets::{Secrets, is_secret_variable};
