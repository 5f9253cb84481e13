//! Declares each setting once: its field, its key, its bounds and its default.
//!
//! [`settings!`] declares a section of the configuration. Each line creates a struct field, its default, and
//! a [`Key`]. The configuration file, the environment, flags, `endmark config` and the generated reference
//! all use these keys.
//!
//! ```
//! use endmark_setting::{AtLeast, Flag, RawSetting};
//!
//! endmark_setting::settings! {
//!     /// How kettles boil.
//!     #[derive(Debug, Clone)]
//!     pub struct Kettle {
//!         /// The cups of water in it.
//!         cups: u32 = 2, AtLeast(1);
//!         /// Whether it whistles.
//!         whistles as "has_whistle": bool = true, Flag;
//!     }
//! }
//!
//! let mut kettle = Kettle::default();
//! let keys = Kettle::keys();
//! assert_eq!(keys[0].set(&mut kettle, &RawSetting::Untyped("3".into())), Ok(()));
//! assert_eq!(kettle.cups, 3);
//! assert_eq!(keys[1].name(), "has_whistle");
//! assert!(keys[0].set(&mut kettle, &RawSetting::Integer(0)).is_err());
//! ```

mod key;
mod kind;
mod raw_setting;

pub use key::Key;
pub use kind::{AtLeast, FilePath, Flag, Names, OneOf, SettingKind, Text};
pub use raw_setting::{ExpectedValue, RawSetting};

/// Declares a section of the configuration.
///
/// Each line contains:
///
/// - a doc comment of one sentence, which is also the summary for users;
/// - the field, with `as "KEY"` if the key has another name;
/// - the type, the default, and the [`SettingKind`] that determines the accepted values.
#[macro_export]
macro_rules! settings {
    ($(#[$meta:meta])* pub struct $name:ident {
        $(#[doc = $summary:literal] $field:ident $(as $key:literal)? : $type:ty = $default:expr, $kind:expr;)*
    }) => {
        $(#[$meta])*
        pub struct $name {
            $(#[doc = $summary] pub $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl $name {
            /// Returns the keys of this section in display order.
            pub fn keys() -> Vec<$crate::Key<Self>> {
                vec![$($crate::Key::new(
                    [$($key,)? stringify!($field)][0],
                    $summary,
                    |section: &Self| &section.$field,
                    |section: &mut Self| &mut section.$field,
                    $kind,
                ),)*]
            }
        }
    };
}
