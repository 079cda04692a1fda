//! Checks of the project itself. There is nothing here but `tests/it`.
