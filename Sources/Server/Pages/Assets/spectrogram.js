// The script that makes an audio file's spectrogram in the browser.
"use strict";
(() => {
  // Decoded samples; more would take too much memory.
  const longest = 20e6, columns = 1200, range = 80;
  const stops = [[0, 0, 4], [87, 16, 110], [188, 55, 84], [249, 142, 9], [252, 255, 164]];

  // Returns red, green and blue of 0 to 1, from dark to bright.
  function colour(value) {
    const place = Math.min(.999, Math.max(0, value)) * (stops.length - 1), low = Math.floor(place);
    return stops[low].map((one, index) => one + (stops[low + 1][index] - one) * (place - low));
  }

  // Transforms a block in place (Fourier, radix 2); its length is a power of two.
  function transform(real, imaginary) {
    const count = real.length;
    for (let i = 1, j = 0; i < count; i++) {
      let bit = count >> 1;
      for (; j & bit; bit >>= 1) j ^= bit;
      j ^= bit;
      if (i < j) [real[i], real[j]] = [real[j], real[i]];
    }
    for (let size = 2; size <= count; size *= 2)
      for (let k = 0; k < size / 2; k++) {
        const angle = -2 * Math.PI * k / size, [c, s] = [Math.cos(angle), Math.sin(angle)];
        for (let i = k, j = k + size / 2; i < count; i += size, j += size) {
          const x = real[j] * c - imaginary[j] * s, y = real[j] * s + imaginary[j] * c;
          real[j] = real[i] - x; imaginary[j] = imaginary[i] - y;
          real[i] += x; imaginary[i] += y;
        }
      }
  }

  // Returns the decibels of each column's frequencies, from low to high.
  function* spectra(samples, size) {
    const window = Float64Array.from({ length: size }, (_, n) => .5 - .5 * Math.cos(2 * Math.PI * n / size));
    for (let column = 0; column < columns; column++) {
      const start = Math.round(column / columns * samples.length - size / 2);
      const real = window.map((weight, n) => weight * (samples[start + n] ?? 0)), imaginary = new Float64Array(size);
      transform(real, imaginary);
      yield real.slice(0, size / 2).map((value, n) => 10 * Math.log10(value ** 2 + imaginary[n] ** 2 + 1e-12));
    }
  }

  // Draws a file's first channel on a canvas: time to the right, 0 to half its rate upwards, loud parts bright.
  window.drawSpectrogram = async (canvas, address, rate, seconds) => {
    if (rate * seconds > longest) throw new Error("it is too long for a spectrogram");
    const answer = await fetch(address);
    if (!answer.ok) throw new Error("it could not be loaded");
    const audio = await new OfflineAudioContext(1, 1, rate).decodeAudioData(await answer.arrayBuffer())
      .catch(() => { throw new Error("this browser cannot decode it"); });
    const size = rate > 24000 ? 1024 : 512, all = [...spectra(audio.getChannelData(0), size)];
    const most = all.reduce((most, one) => one.reduce((most, value) => Math.max(most, value), most), -60);
    [canvas.width, canvas.height] = [columns, size / 2];
    const context = canvas.getContext("2d"), picture = context.createImageData(columns, size / 2);
    all.forEach((one, x) => one.forEach((value, n) => {
      picture.data.set([...colour(1 + (value - most) / range), 255], 4 * ((size / 2 - 1 - n) * columns + x));
    }));
    context.putImageData(picture, 0, 0);
  };
})();
