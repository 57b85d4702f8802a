//! The checksum that every page of the database file carries in its last eight bytes. It covers the page's number too, so that a
//! page in the wrong place is as bad as a changed one. SQLite leaves these bytes alone: they are reserved in the file's header.

/// How many bytes at the end of a page are ours.
pub(crate) const RESERVED: usize = 8;

/// Tells our checksum from another's, and names its version.
const TAG: [u8; 4] = *b"rvp1";

/// Whether a read or write is of one whole page.
pub(crate) fn is_page(len: usize, offset: i64) -> bool {
    len >= 512 && len.is_power_of_two() && usize::try_from(offset).is_ok_and(|offset| offset.is_multiple_of(len))
}

/// Writes the checksum of a page into its end.
pub(crate) fn stamp(page: &mut [u8], offset: i64) {
    let sum = checksum(page, offset);
    let end = page.len() - RESERVED;
    page[end..].copy_from_slice(&sum);
}

/// Whether a page is as it was stamped.
pub(crate) fn is_sound(page: &[u8], offset: i64) -> bool {
    page[page.len() - RESERVED..] == checksum(page, offset)
}

fn checksum(page: &[u8], offset: i64) -> [u8; RESERVED] {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&offset.to_be_bytes());
    crc.update(&page[..page.len() - RESERVED]);
    let mut sum = [0; RESERVED];
    sum[..4].copy_from_slice(&crc.finalize().to_be_bytes());
    sum[4..].copy_from_slice(&TAG);
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_changed_byte_and_any_other_place_is_noticed() {
        let mut page: Vec<u8> = (0..512u32).map(|i| (i * 7) as u8).collect();
        stamp(&mut page, 1024);
        assert!(is_sound(&page, 1024));
        assert!(!is_sound(&page, 512));
        for i in 0..page.len() {
            page[i] ^= 0x10;
            assert!(!is_sound(&page, 1024), "byte {i}");
            page[i] ^= 0x10;
        }
    }

    #[test]
    fn only_whole_pages_count() {
        assert!(is_page(4096, 8192) && is_page(512, 0));
        assert!(!is_page(100, 0) && !is_page(16, 24) && !is_page(4096, 100) && !is_page(4000, 0));
    }
}
