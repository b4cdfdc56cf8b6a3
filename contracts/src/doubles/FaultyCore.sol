// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// Answers a call with the raw bytes that a test set for its selector. They may hold state 7, dirty bits, too few or too many bytes. A
/// selector without an answer gets empty bytes.
contract FaultyCore {
    mapping(bytes4 selector => bytes) private _answers;

    function setAnswer(bytes4 selector, bytes calldata answer) external {
        _answers[selector] = answer;
    }

    fallback(bytes calldata) external returns (bytes memory) {
        return _answers[msg.sig];
    }
}
