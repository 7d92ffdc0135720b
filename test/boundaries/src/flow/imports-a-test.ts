// forbidden: program-stands-alone
import { fixture } from '../../test/fixture.ts';

export const borrowed = fixture;
