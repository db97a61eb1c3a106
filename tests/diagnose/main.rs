//! `diagnose` on what people really have: files that are damaged, cut off, of another
//! version, huge, or no recording at all.

#[cfg(test)]
mod ends;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod files;
#[cfg(test)]
mod large;
#[cfg(test)]
mod logs;
#[cfg(test)]
mod programs;
#[cfg(test)]
mod records;
#[cfg(test)]
mod reports;
#[cfg(test)]
mod settings;
#[cfg(test)]
mod standstill;
#[cfg(test)]
mod switches;
