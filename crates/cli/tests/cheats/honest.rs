//! Honest agents use git as in any clone, and the user's repository does not notice.
