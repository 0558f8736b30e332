//! Channels side by side, as one picture that is nearly square (jointdnn §4.2, Figure 13).

/// How the channels of a tensor lie in its picture: row by row, the first on the left above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiles {
    channels: usize,
    height: usize,
    width: usize,
    /// Channels beside each other.
    columns: usize,
}

impl Tiles {
    /// The picture of a tensor of this shape. Its last two axes are the sides of a channel, which all others count; a shape of
    /// one axis is one channel of one line.
    pub fn of(shape: &[usize]) -> Tiles {
        let (channels, height, width) = match shape {
            [] => (1, 1, 1),
            [width] => (1, 1, *width),
            [channels @ .., height, width] => (channels.iter().product(), *height, *width),
        };
        // Columns · width ≈ rows · height, where columns · rows ≈ channels.
        let square = (channels as f64 * height as f64 / (width as f64).max(1.0)).sqrt();
        Tiles {
            channels,
            height,
            width,
            columns: (square.round() as usize).clamp(1, channels.max(1)),
        }
    }

    /// The picture's width in pixels.
    pub fn picture_width(self) -> usize {
        self.columns * self.width
    }

    /// The picture's height in pixels.
    pub fn picture_height(self) -> usize {
        self.channels.div_ceil(self.columns) * self.height
    }

    /// The picture of these numbers, one channel after the other; where there is no channel it is `empty`.
    ///
    /// # Panics
    /// Unless there are as many as the tensor has.
    pub fn tiled(self, values: &[u8], empty: u8) -> Vec<u8> {
        let mut picture = vec![empty; self.picture_width() * self.picture_height()];
        for (line, values) in values.chunks_exact(self.width.max(1)).enumerate() {
            let at = self.place(line);
            picture[at..at + self.width].copy_from_slice(values);
        }
        picture
    }

    /// The numbers in a picture, one channel after the other.
    ///
    /// # Panics
    /// Unless it has the picture's size.
    pub fn untiled(self, picture: &[u8]) -> Vec<u8> {
        let mut values = Vec::with_capacity(self.channels * self.height * self.width);
        for line in 0..self.channels * self.height {
            let at = self.place(line);
            values.extend_from_slice(&picture[at..at + self.width]);
        }
        values
    }

    /// Where in the picture a line of a channel begins; lines are counted through all channels.
    fn place(self, line: usize) -> usize {
        let (channel, y) = (line / self.height, line % self.height);
        let (row, column) = (channel / self.columns, channel % self.columns);
        (row * self.height + y) * self.picture_width() + column * self.width
    }
}
