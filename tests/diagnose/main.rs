//! `diagnose` on what people really have: files that are damaged, cut off, of another
//! version, huge, or no recording at all.

#[cfg(test)]
mod files;
#[cfg(test)]
mod large;
#[cfg(test)]
mod logs;
#[cfg(test)]
mod records;
