//! PCI addresses: the one name of a card that all sources share.

use crate::model::GpuId;

/// Domain, bus, device and function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PciAddress {
    /// PCI domain (segment).
    pub(crate) domain: u32,
    /// Bus.
    pub(crate) bus: u8,
    /// Device, 0 to 31.
    pub(crate) device: u8,
    /// Function, 0 to 7.
    pub(crate) function: u8,
}

impl PciAddress {
    /// Reads `0000:0c:00.0` with a domain of 4 to 8 digits in either case (NVML
    /// writes 8).
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let (domain, bus, rest) = (parts.next()?, parts.next()?, parts.next()?);
        let (device, function) = rest.split_once('.')?;
        let digits = |s: &str| s.bytes().all(|b| b.is_ascii_hexdigit());
        let sizes = (4..=8).contains(&domain.len())
            && bus.len() == 2
            && device.len() == 2
            && function.len() == 1;
        if parts.next().is_some()
            || !sizes
            || ![domain, bus, device, function].map(digits)[..]
                .iter()
                .all(|d| *d)
        {
            return None;
        }
        let address = Self {
            domain: u32::from_str_radix(domain, 16).ok()?,
            bus: u8::from_str_radix(bus, 16).ok()?,
            device: u8::from_str_radix(device, 16).ok()?,
            function: u8::from_str_radix(function, 16).ok()?,
        };
        (address.device < 32 && address.function < 8).then_some(address)
    }

    /// The address as the kernel writes it: lower case, domain of four digits.
    pub(crate) fn id(self) -> GpuId {
        GpuId(format!(
            "{:04x}:{:02x}:{:02x}.{}",
            self.domain, self.bus, self.device, self.function
        ))
    }

    /// The address that KFD writes as `domain` and `location_id`.
    pub(crate) fn at(domain: u32, location: u32) -> Option<Self> {
        let [device, bus] = u16::try_from(location).ok()?.to_le_bytes();
        Some(Self {
            domain,
            bus,
            device: device >> 3,
            function: device & 7,
        })
    }

    /// KFD's `location_id`: bus, device and function in 16 bits.
    pub(crate) fn location(self) -> u32 {
        u32::from(self.bus) << 8 | u32::from(self.device) << 3 | u32::from(self.function)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_of_both_makers_become_one_form() {
        let id = |s| PciAddress::parse(s).map(|a| a.id().0);
        assert_eq!(id("0000:0C:00.0").as_deref(), Some("0000:0c:00.0"));
        assert_eq!(id("00000000:1B:00.0").as_deref(), Some("0000:1b:00.0"));
        assert_eq!(id("10000:e1:00.0").as_deref(), Some("10000:e1:00.0"));
        for bad in [
            "",
            "device",
            "0000:0c:00",
            "0000:0c:20.0",
            "0000:0c:00.8",
            "+000:0c:00.0",
        ] {
            assert_eq!(PciAddress::parse(bad), None, "{bad}");
        }
        assert_eq!(
            PciAddress::parse("0000:0c:01.2").unwrap().location(),
            0x0c0a
        );
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in ".*") {
            if let Some(address) = PciAddress::parse(&text) {
                prop_assert_eq!(PciAddress::parse(&address.id().0), Some(address));
            }
        }
    }
}
