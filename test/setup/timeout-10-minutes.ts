jest.setTimeout(600_000);
