"""Certificates: files that prove what Tessella says, and the program that checks them."""
