//! The page of the documentation.
