//! The library's functions behind safe ones. The only `unsafe` of the program.
//!
//! What makes the calls sound: every function is declared in `rocm_smi_safe.h`, whose
//! signatures have kept their shape from ROCm 5.2 to 7.x; what they write goes into
//! locals of the caller of exactly the declared types; none keeps a pointer. A symbol
//! that this library lacks is never called: its field holds an error instead.
#![expect(
    unsafe_code,
    reason = "calls into a C library that is loaded at run time"
)]

use std::ffi::{CStr, OsStr};
use std::ptr;

use bindings as raw;

#[expect(
    dead_code,
    non_camel_case_types,
    unreachable_pub,
    clippy::unreadable_literal,
    clippy::expect_used,
    clippy::unnecessary_wraps,
    reason = "as bindgen writes them: more than is called, in the names of C"
)]
mod bindings {
    #[cfg(feature = "bindgen")]
    include!(concat!(env!("OUT_DIR"), "/rocm_smi.rs"));
    #[cfg(not(feature = "bindgen"))]
    include!("bindings.rs");
}

/// Why a call gave no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallError {
    /// The library has no such function.
    Lacking,
    /// It says that the card does not offer the value.
    NotSupported,
    /// Another status.
    Status {
        /// The number.
        status: u32,
        /// Function and what the library says of the number.
        words: String,
    },
}

type Answer<T> = Result<T, CallError>;
type Symbol<F> = Result<F, libloading::Error>;

/// Memory that a card uses.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pool {
    /// The card's own.
    Vram,
    /// The system's, mapped for the card.
    Gtt,
}

/// Places where a temperature is taken.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    /// Edge of the die.
    Edge,
    /// Hottest spot of the die.
    Junction,
    /// Memory.
    Memory,
}

impl Pool {
    const fn raw(self) -> raw::rsmi_memory_type_t {
        match self {
            Self::Vram => raw::RSMI_MEM_TYPE_VRAM,
            Self::Gtt => raw::RSMI_MEM_TYPE_GTT,
        }
    }
}

impl Place {
    const fn raw(self) -> raw::rsmi_temperature_type_t {
        match self {
            Self::Edge => raw::RSMI_TEMP_TYPE_EDGE,
            Self::Junction => raw::RSMI_TEMP_TYPE_JUNCTION,
            Self::Memory => raw::RSMI_TEMP_TYPE_MEMORY,
        }
    }
}

/// The loaded library.
pub(super) struct Library {
    raw: raw::RocmSmi,
}

impl Library {
    /// Loads it by name or path. The error is that of the dynamic linker.
    pub(super) fn open(name: &OsStr) -> Result<Self, String> {
        // SAFETY: loading runs the library's constructors. This process exists for
        // nothing else, so what they do to it harms nobody.
        let raw = unsafe { raw::RocmSmi::new(name) }.map_err(|e| e.to_string())?;
        Ok(Self { raw })
    }

    /// Functions without which nothing can be asked, and which it lacks.
    pub(super) fn lacks_needed(&self) -> Vec<String> {
        let needed = [
            ("rsmi_init", self.raw.rsmi_init.is_ok()),
            (
                "rsmi_num_monitor_devices",
                self.raw.rsmi_num_monitor_devices.is_ok(),
            ),
            ("rsmi_dev_pci_id_get", self.raw.rsmi_dev_pci_id_get.is_ok()),
        ];
        let lacking = needed.into_iter().filter(|(_, there)| !there);
        lacking.map(|(name, _)| name.to_owned()).collect()
    }

    /// Values that it has no function for.
    pub(super) fn lacks_values(&self) -> Vec<String> {
        let raw = &self.raw;
        let power = raw.rsmi_dev_power_ave_get.is_ok() || raw.rsmi_dev_power_get.is_ok();
        let values = [
            (
                "busy",
                "rsmi_dev_busy_percent_get",
                raw.rsmi_dev_busy_percent_get.is_ok(),
            ),
            (
                "memory busy",
                "rsmi_dev_memory_busy_percent_get",
                raw.rsmi_dev_memory_busy_percent_get.is_ok(),
            ),
            ("power", "rsmi_dev_power_ave_get", power),
            (
                "power cap",
                "rsmi_dev_power_cap_get",
                raw.rsmi_dev_power_cap_get.is_ok(),
            ),
            (
                "memory size",
                "rsmi_dev_memory_total_get",
                raw.rsmi_dev_memory_total_get.is_ok(),
            ),
            (
                "memory in use",
                "rsmi_dev_memory_usage_get",
                raw.rsmi_dev_memory_usage_get.is_ok(),
            ),
            (
                "temperatures",
                "rsmi_dev_temp_metric_get",
                raw.rsmi_dev_temp_metric_get.is_ok(),
            ),
            (
                "fan",
                "rsmi_dev_fan_rpms_get",
                raw.rsmi_dev_fan_rpms_get.is_ok(),
            ),
        ];
        let lacking = values.into_iter().filter(|(_, _, there)| !there);
        lacking
            .map(|(value, name, _)| format!("{value} ({name})"))
            .collect()
    }

    /// Must succeed before anything of a card is asked.
    pub(super) fn init(&self) -> Answer<()> {
        let symbol = &self.raw.rsmi_init;
        self.ask("rsmi_init", symbol, |f, ()| {
            // SAFETY: takes a number only.
            unsafe { f(0) }
        })
    }

    /// Number of cards, counted as DRM numbers them.
    pub(super) fn count(&self) -> Answer<u32> {
        let symbol = &self.raw.rsmi_num_monitor_devices;
        self.ask("rsmi_num_monitor_devices", symbol, |f, count| {
            // SAFETY: writes one u32.
            unsafe { f(count) }
        })
    }

    /// Version of the interface in words; does not tell the release.
    pub(super) fn version(&self) -> Option<String> {
        let f = self.raw.rsmi_version_get.as_ref().ok()?;
        let mut version = raw::rsmi_version_t {
            major: 0,
            minor: 0,
            patch: 0,
            build: ptr::null(),
        };
        // SAFETY: writes one rsmi_version_t, 24 bytes in every release; its text is not read.
        let status = unsafe { f(&raw mut version) };
        (status == raw::RSMI_STATUS_SUCCESS)
            .then(|| format!("{}.{}.{}", version.major, version.minor, version.patch))
    }

    /// PCI address of a card in the library's own form.
    pub(super) fn pci_id(&self, card: u32) -> Answer<u64> {
        let symbol = &self.raw.rsmi_dev_pci_id_get;
        self.ask("rsmi_dev_pci_id_get", symbol, |f, address| {
            // SAFETY: writes one u64; a number that is no card is answered with a status.
            unsafe { f(card, address) }
        })
    }

    /// Percent.
    pub(super) fn busy(&self, card: u32) -> Answer<u32> {
        let symbol = &self.raw.rsmi_dev_busy_percent_get;
        self.ask("rsmi_dev_busy_percent_get", symbol, |f, percent| {
            // SAFETY: writes one u32.
            unsafe { f(card, percent) }
        })
    }

    /// Percent.
    pub(super) fn memory_busy(&self, card: u32) -> Answer<u32> {
        let symbol = &self.raw.rsmi_dev_memory_busy_percent_get;
        self.ask("rsmi_dev_memory_busy_percent_get", symbol, |f, percent| {
            // SAFETY: writes one u32.
            unsafe { f(card, percent) }
        })
    }

    /// Microwatts: the average, else (ROCm 6.0 and newer) whatever the card offers.
    pub(super) fn power(&self, card: u32) -> Answer<u64> {
        let symbol = &self.raw.rsmi_dev_power_ave_get;
        let average = self.ask("rsmi_dev_power_ave_get", symbol, |f, power| {
            // SAFETY: writes one u64; sensor 0 is the card's.
            unsafe { f(card, 0, power) }
        });
        let any = match &average {
            Err(CallError::Lacking | CallError::NotSupported) => self.any_power(card),
            _ => return average,
        };
        match any {
            Err(CallError::Lacking) => average,
            any => any,
        }
    }

    fn any_power(&self, card: u32) -> Answer<u64> {
        let symbol = &self.raw.rsmi_dev_power_get;
        let mut kind = raw::RSMI_INVALID_POWER;
        let power = self.ask("rsmi_dev_power_get", symbol, |f, power| {
            // SAFETY: writes one u64 and one RSMI_POWER_TYPE, an enum of four bytes.
            unsafe { f(card, power, &raw mut kind) }
        })?;
        if kind == raw::RSMI_INVALID_POWER {
            return Err(CallError::NotSupported);
        }
        Ok(power)
    }

    /// Microwatts: the limit in force.
    pub(super) fn power_cap(&self, card: u32) -> Answer<u64> {
        let symbol = &self.raw.rsmi_dev_power_cap_get;
        self.ask("rsmi_dev_power_cap_get", symbol, |f, cap| {
            // SAFETY: writes one u64; sensor 0 is the card's.
            unsafe { f(card, 0, cap) }
        })
    }

    /// Bytes.
    pub(super) fn memory_total(&self, card: u32, pool: Pool) -> Answer<u64> {
        let symbol = &self.raw.rsmi_dev_memory_total_get;
        self.ask("rsmi_dev_memory_total_get", symbol, |f, total| {
            // SAFETY: writes one u64; the pool is a number of the header.
            unsafe { f(card, pool.raw(), total) }
        })
    }

    /// Bytes.
    pub(super) fn memory_used(&self, card: u32, pool: Pool) -> Answer<u64> {
        let symbol = &self.raw.rsmi_dev_memory_usage_get;
        self.ask("rsmi_dev_memory_usage_get", symbol, |f, used| {
            // SAFETY: writes one u64; the pool is a number of the header.
            unsafe { f(card, pool.raw(), used) }
        })
    }

    /// Thousandths of a degree Celsius.
    pub(super) fn temperature(&self, card: u32, place: Place) -> Answer<i64> {
        let symbol = &self.raw.rsmi_dev_temp_metric_get;
        self.ask("rsmi_dev_temp_metric_get", symbol, |f, value| {
            // SAFETY: writes one i64; place and kind are numbers of the header.
            unsafe { f(card, place.raw(), raw::RSMI_TEMP_CURRENT, value) }
        })
    }

    /// Revolutions a minute.
    pub(super) fn fan(&self, card: u32) -> Answer<i64> {
        let symbol = &self.raw.rsmi_dev_fan_rpms_get;
        self.ask("rsmi_dev_fan_rpms_get", symbol, |f, speed| {
            // SAFETY: writes one i64; sensor 0 is the card's.
            unsafe { f(card, 0, speed) }
        })
    }

    /// Calls a function that writes one value and answers with a status.
    fn ask<F, T: Default>(
        &self,
        name: &str,
        symbol: &Symbol<F>,
        call: impl FnOnce(&F, &mut T) -> raw::rsmi_status_t,
    ) -> Answer<T> {
        let function = symbol.as_ref().map_err(|_not_there| CallError::Lacking)?;
        let mut value = T::default();
        match call(function, &mut value) {
            raw::RSMI_STATUS_SUCCESS => Ok(value),
            raw::RSMI_STATUS_NOT_SUPPORTED => Err(CallError::NotSupported),
            status => Err(CallError::Status {
                status,
                words: format!("{name}: {}", self.words(status)),
            }),
        }
    }

    /// What the library says of a status, with its number.
    fn words(&self, status: raw::rsmi_status_t) -> String {
        let number = format!("status {status}");
        let Ok(f) = &self.raw.rsmi_status_string else {
            return number;
        };
        let mut text = ptr::null();
        // SAFETY: writes one pointer.
        let answer = unsafe { f(status, &raw mut text) };
        if answer != raw::RSMI_STATUS_SUCCESS || text.is_null() {
            return number;
        }
        // SAFETY: on success it points to a text of the library that ends in NUL and is never freed.
        let text = unsafe { CStr::from_ptr(text) };
        format!("{number}, {}", text.to_string_lossy().trim())
    }
}

#[cfg(test)]
mod tests {
    /// The bindings that are used where there is no libclang, held to the header.
    #[test]
    #[cfg(feature = "bindgen")]
    fn bindings_in_the_repository_are_those_of_a_fresh_run() {
        let fresh = include_str!(concat!(env!("OUT_DIR"), "/rocm_smi.rs"));
        let kept = include_str!("bindings.rs");
        let at = concat!(env!("OUT_DIR"), "/rocm_smi.rs");
        assert!(
            fresh == kept,
            "the header or bindgen has changed: copy {at} to src/telemetry/rocm_smi/bindings.rs"
        );
    }

    #[test]
    #[cfg(not(feature = "bindgen"))]
    fn bindings_in_the_repository_are_those_of_a_fresh_run() {
        let ci = std::env::var("CI").is_ok_and(|v| v == "true");
        assert!(
            !ci,
            "under CI the feature bindgen must be on (--all-features)"
        );
        println!("built without the feature bindgen: not compared");
    }
}
