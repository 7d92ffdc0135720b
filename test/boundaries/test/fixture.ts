export const fixture = 'test';
