//! The words that stand for the values of an enum, wherever they are written: in recipes, answers and stored rows.

/// An enum that [`words!`] made, where any of them will do.
pub trait Word: Copy + 'static {
    const WORDS: &'static [(Self, &'static str)];

    /// Its place among them.
    fn index(self) -> usize;
}

/// Enums whose values are words: with `ALL` in this order, `as_str`, `parse` and `Display`.
macro_rules! words {
    ($($(#[$about:meta])* pub enum $type:ident {
        $($(#[$about_value:meta])* $value:ident = $word:literal,)+
    })+) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $type {
            $($(#[$about_value])* $value,)+
        }

        impl $type {
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$value),+];

            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)+
                }
            }

            pub fn parse(text: &str) -> Option<Self> {
                match text {
                    $($word => Some(Self::$value),)+
                    _ => None,
                }
            }
        }

        impl $crate::words::Word for $type {
            const WORDS: &'static [(Self, &'static str)] = &[$((Self::$value, $word)),+];

            fn index(self) -> usize {
                self as usize
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    )+};
}

pub(crate) use words;
