//! What a stone is graded by, each a short list of words.

/// An enum whose members have words: in JSON, in tables, in rules.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $member:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$of])* $member,)+
        }

        impl $name {
            /// All of them, the most wanted first.
            pub const ALL: &[Self] = &[$(Self::$member,)+];
            /// Their words, for a refusal.
            pub const WORDS: &str = concat!($($word, " ",)+);

            /// The word.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$member => $word,)+ }
            }

            /// The one with this word, compared letter by letter.
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.as_str() == word)
            }
        }
    };
}

words! {
    /// Where it was made.
    Origin {
        /// Under the earth.
        Natural = "natural",
        /// In a reactor.
        LabGrown = "lab_grown",
    }
}

words! {
    /// Its outline.
    Shape {
        /// Brilliant.
        Round = "round",
        /// Pointed at both corners.
        Oval = "oval",
        /// Square with brilliant facets.
        Princess = "princess",
        /// Square with rounded corners.
        Cushion = "cushion",
        /// Stepped, with cut corners.
        Emerald = "emerald",
        /// A drop.
        Pear = "pear",
        /// A boat.
        Marquise = "marquise",
        /// Emerald's outline with brilliant facets.
        Radiant = "radiant",
        /// Square and stepped.
        Asscher = "asscher",
        /// A heart.
        Heart = "heart",
    }
}

words! {
    /// From colourless to faintly yellow.
    Colour {
        /// Colourless.
        D = "D",
        /// Colourless.
        E = "E",
        /// Colourless.
        F = "F",
        /// Nearly so.
        G = "G",
        /// Nearly so.
        H = "H",
        /// Nearly so.
        I = "I",
        /// Nearly so.
        J = "J",
        /// Faint.
        K = "K",
        /// Faint.
        L = "L",
        /// Faint.
        M = "M",
    }
}

words! {
    /// What a loupe finds inside.
    Clarity {
        /// Nothing, nor on the surface.
        Fl = "FL",
        /// Nothing.
        If = "IF",
        /// Very, very little.
        Vvs1 = "VVS1",
        /// Very, very little.
        Vvs2 = "VVS2",
        /// Very little.
        Vs1 = "VS1",
        /// Very little.
        Vs2 = "VS2",
        /// A little.
        Si1 = "SI1",
        /// A little.
        Si2 = "SI2",
        /// What an eye finds as well.
        I1 = "I1",
    }
}

words! {
    /// How well it was cut.
    Cut {
        /// As well as can be.
        Excellent = "excellent",
        /// Nearly so.
        VeryGood = "very_good",
        /// Well.
        Good = "good",
        /// Not well.
        Fair = "fair",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_their_own_inverse_and_each_is_told_in_a_refusal() {
        for shape in Shape::ALL {
            assert_eq!(Shape::parse(shape.as_str()), Some(*shape));
            assert!(Shape::WORDS.split(' ').any(|word| word == shape.as_str()));
        }
        for clarity in Clarity::ALL {
            assert_eq!(Clarity::parse(clarity.as_str()), Some(*clarity));
        }
        assert_eq!((Shape::ALL.len(), Colour::ALL.len(), Clarity::ALL.len(), Cut::ALL.len()), (10, 10, 9, 4));
        assert_eq!((Shape::parse("ROUND"), Origin::parse(""), Cut::parse("very good")), (None, None, None));
    }
}
