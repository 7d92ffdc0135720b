// forbidden: packages-are-declared
import Long from 'long';

export const long = Long;
