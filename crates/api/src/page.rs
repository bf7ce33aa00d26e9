//! Which page of a list is asked for: in the same words, and with the same limits, for all lists.

use crate::error::ApiError;

const SIZE_DEFAULT: u32 = 15;
const SIZE_MAX: u32 = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Page {
    /// From 1.
    pub(crate) number: u32,
    pub(crate) size: u32,
}

/// `per_page` is v10's name for the size, and `page_size` the name that the answer has for it.
pub(crate) fn asked_page(
    number: Option<u32>,
    per_page: Option<u32>,
    page_size: Option<u32>,
) -> Result<Page, ApiError> {
    let number = number.unwrap_or(1);
    if number == 0 {
        return Err(ApiError::invalid("page must be greater than 0"));
    }
    let size = per_page.or(page_size).unwrap_or(SIZE_DEFAULT);
    if !(1..=SIZE_MAX).contains(&size) {
        return Err(ApiError::invalid(format!("page size must be between 1 and {SIZE_MAX}, and is {size}")));
    }
    Ok(Page { number, size })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_their_sizes() {
        for (number, per_page, page_size, expected) in [
            (None, None, None, Ok((1, 15))),
            (Some(3), Some(50), None, Ok((3, 50))),
            (None, None, Some(100), Ok((1, 100))),
            (None, Some(2), Some(3), Ok((1, 2))),
            (Some(0), Some(0), None, Err("page must be greater than 0")),
            (None, Some(0), None, Err("page size must be between 1 and 100, and is 0")),
            (None, None, Some(101), Err("page size must be between 1 and 100, and is 101")),
        ] {
            let asked = asked_page(number, per_page, page_size);
            let asked =
                asked.map(|page| (page.number, page.size)).map_err(|error| error.message().to_owned());
            assert_eq!(asked, expected.map_err(str::to_owned), "{number:?}, {per_page:?}, {page_size:?}");
        }
    }
}
