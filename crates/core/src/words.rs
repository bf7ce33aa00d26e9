//! The words that stand for the values of an enum, wherever they are written: in recipes, answers and stored rows.

/// `ALL` in this order, `as_str`, and `parse`.
macro_rules! words {
    ($type:ident { $($value:ident = $word:literal),+ $(,)? }) => {
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
    };
}

pub(crate) use words;
